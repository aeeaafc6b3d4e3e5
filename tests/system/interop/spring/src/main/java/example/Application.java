package example;

import jakarta.servlet.DispatcherType;
import java.time.Duration;
import java.util.Map;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.security.config.Customizer;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.core.Authentication;
import org.springframework.security.core.annotation.AuthenticationPrincipal;
import org.springframework.security.oauth2.client.ClientAuthorizationException;
import org.springframework.security.oauth2.client.OAuth2AuthorizeRequest;
import org.springframework.security.oauth2.client.OAuth2AuthorizedClient;
import org.springframework.security.oauth2.client.OAuth2AuthorizedClientProviderBuilder;
import org.springframework.security.oauth2.client.annotation.RegisteredOAuth2AuthorizedClient;
import org.springframework.security.oauth2.client.oidc.userinfo.OidcUserRequest;
import org.springframework.security.oauth2.client.oidc.userinfo.OidcUserService;
import org.springframework.security.oauth2.client.oidc.web.logout.OidcClientInitiatedLogoutSuccessHandler;
import org.springframework.security.oauth2.client.registration.ClientRegistrationRepository;
import org.springframework.security.oauth2.client.web.DefaultOAuth2AuthorizedClientManager;
import org.springframework.security.oauth2.client.web.OAuth2AuthorizedClientRepository;
import org.springframework.security.oauth2.core.oidc.user.OidcUser;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.security.web.servlet.util.matcher.PathPatternRequestMatcher;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** An application that signs its users in by Spring Security's oauth2Login. */
@SpringBootApplication
@RestController
public class Application {
    private final ClientRegistrationRepository registrations;
    private final OAuth2AuthorizedClientRepository clients;

    Application(ClientRegistrationRepository registrations, OAuth2AuthorizedClientRepository clients) {
        this.registrations = registrations;
        this.clients = clients;
    }

    public static void main(String[] arguments) {
        SpringApplication.run(Application.class, arguments);
    }

    @Bean
    SecurityFilterChain security(HttpSecurity http) {
        var atLatchkey = new OidcClientInitiatedLogoutSuccessHandler(registrations);
        atLatchkey.setPostLogoutRedirectUri("{baseUrl}/");
        return http
                // Else the browser's request for an icon would begin a sign-in too.
                .authorizeHttpRequests(any -> any
                        .dispatcherTypeMatchers(DispatcherType.ERROR).permitAll()
                        .requestMatchers("/", "/favicon.ico").permitAll()
                        .anyRequest().authenticated())
                .oauth2Login(login -> login.redirectionEndpoint(there -> there.baseUri("/callback")))
                .oidcLogout(told -> told.backChannel(Customizer.withDefaults()))
                .logout(logout -> logout
                        .logoutRequestMatcher(PathPatternRequestMatcher.withDefaults().matcher("/logout"))
                        .logoutSuccessHandler(atLatchkey))
                .build();
    }

    @GetMapping("/")
    String home() {
        return "Signed out";
    }

    @GetMapping("/me")
    Map<String, Object> me(@AuthenticationPrincipal OidcUser user) {
        return user.getClaims();
    }

    /** Refresh as if the access token had expired, and ask for the user's claims with the new one. */
    @GetMapping("/refresh")
    Map<String, Object> refresh(Authentication authentication, @AuthenticationPrincipal OidcUser user,
            @RegisteredOAuth2AuthorizedClient("latchkey") OAuth2AuthorizedClient client) {
        var manager = new DefaultOAuth2AuthorizedClientManager(registrations, clients);
        manager.setAuthorizedClientProvider(OAuth2AuthorizedClientProviderBuilder.builder()
                .refreshToken(refresh -> refresh.clockSkew(Duration.ofDays(1))).build());
        try {
            var token = manager.authorize(OAuth2AuthorizeRequest.withAuthorizedClient(client)
                    .principal(authentication).build()).getAccessToken();
            var info = new OidcUserService()
                    .loadUser(new OidcUserRequest(client.getClientRegistration(), token, user.getIdToken()));
            return Map.of("is_new", !token.getTokenValue().equals(client.getAccessToken().getTokenValue()),
                    "sub", info.getSubject(), "email", info.getUserInfo().getEmail(),
                    "groups", info.getUserInfo().getClaimAsStringList("groups"));
        } catch (ClientAuthorizationException refusal) {
            return Map.of("refused", refusal.getError().getErrorCode());
        }
    }
}
